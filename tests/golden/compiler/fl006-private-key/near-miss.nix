{ base, merge, ... }: merge base {
  trust.keys = [ "golden-2:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=" ];
  rev = "no PRIVATE KEY here";
}
