# Each of the two keys must sign.
{ base, merge, ... }:
merge base {
  trust = {
    signingKeys = base.trust.signingKeys ++ [ "other-1:yhdMu+/WKty4yUiUvdFH+BTAvBh1iPl6sZIjcLFeSBM=" ];
    threshold = 2;
  };
}
