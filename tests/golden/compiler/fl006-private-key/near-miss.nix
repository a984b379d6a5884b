{ base, merge, ... }: merge base {
  trust.keys = [ "golden-2:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=" ];
  hosts.alpha.tags = [ "no PRIVATE KEY here" ];
}
