"""Links in memory asked at once, and answers in other libraries."""
