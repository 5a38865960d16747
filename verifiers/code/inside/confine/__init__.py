"""How a process is locked in before it runs a program that nobody has read, and how it is watched."""
