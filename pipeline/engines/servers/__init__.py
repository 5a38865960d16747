"""vLLM servers: what they may answer, how much each is sent, and who takes over from one that fails."""
