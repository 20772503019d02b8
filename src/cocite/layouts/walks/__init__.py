"""What layouts of walks share: meetings, the steps of walks, walks made again."""
