"""How long a test waits for what happens at once on an idle machine, before it says that it never happens."""

PATIENCE = 900.0  # seconds: minutes of computing on two cores at a load of 30
