{ base, merge, ... }: { after = merge base { services.wiki.host = "alpha"; }; }
