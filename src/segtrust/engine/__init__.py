"""How many cases are run: here, in several processes or on a cluster; and how a run goes on after a break."""
