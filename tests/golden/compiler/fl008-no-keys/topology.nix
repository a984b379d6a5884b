{ base, merge, ... }: merge base { trust.keys = [ ]; providers.config.hosts = [ "alpha" ]; }
