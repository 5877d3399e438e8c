"""What a release leaves behind: released and public values, without data and without noise."""
