# One key more than must sign.
{ base, merge, ... }:
merge base {
  trust = {
    signingKeys = base.trust.signingKeys ++ [
      "other-1:yhdMu+/WKty4yUiUvdFH+BTAvBh1iPl6sZIjcLFeSBM="
      "spare-1:tL7og4lmiCY6djfWO12Xhryi/3UlDO0iTIhxN2niLFo="
    ];
    threshold = 2;
  };
}
