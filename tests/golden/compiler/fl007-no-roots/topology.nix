{ base, merge, ... }: merge base { trust.roots = [ ]; }
