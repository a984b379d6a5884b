# A host becomes a member of another cluster too: its documents stay, its units are others.
{ base, merge, ... }: { after = merge base { hosts.beta.instance = "blue"; }; }
