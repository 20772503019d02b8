"""What an index will take and how exact it will be, told before it is built."""
