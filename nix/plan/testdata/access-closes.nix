{ base, merge, ... }: { after = merge base { users.ann.roles = [ ]; groups.control-plane = [ ]; }; }
