{ base, merge, ... }: merge base { services.wiki.hosts = [ "alpha" ]; }
