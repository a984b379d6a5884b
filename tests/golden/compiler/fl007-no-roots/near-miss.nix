{ base, merge, ... }: merge base { trust.roots = base.trust.roots ++ [ ../../../cluster/ca.crt ]; }
