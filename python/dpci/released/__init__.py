"""What a release leaves behind: released and public values only."""
