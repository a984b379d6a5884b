# Without documents over the network there is nothing to pin.
{ base, merge, ... }: merge base { trust.signingKeys = [ ]; }
