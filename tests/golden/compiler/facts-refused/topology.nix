# Facts that are no values, or secrets.
{ base, merge, ... }:
merge base {
  hosts.alpha.facts = {
    VPN = "x";
    key = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEIA==\n-----END PRIVATE KEY-----\n";
    keys = [
      "a"
      "AGE-SECRET-KEY-1QQQQQQQQQQQQQQQQQQQQ"
    ];
    nested.port = 1;
    half = 0.5;
  };
  services.wiki.facts.url = "https://ann:guess@example.org/";
}
