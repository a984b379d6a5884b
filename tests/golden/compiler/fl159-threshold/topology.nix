# A key with two names is one key, so two keys cannot sign.
{ base, merge, ... }:
merge base {
  trust = {
    signingKeys = base.trust.signingKeys ++ [ "other-1:XCy7rhw63wRQyvwr3R1VkY5GBuQyEG/dv/+xh5K2B8c=" ];
    threshold = 2;
  };
}
