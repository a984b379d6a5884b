{ base, merge, ... }: merge base { users.ben.roles = [ "reader" ]; }
