# A host joins another cluster too: its documents stay the same, and its units change.
{ base, merge, ... }: { after = merge base { hosts.beta.instance = "blue"; }; }
