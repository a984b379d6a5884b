{ base, merge, ... }: merge base { roles.reader.groups = [ "apps" "control-plan" ]; }
