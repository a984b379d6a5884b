{ base, merge, ... }:
merge base {
  hosts.alpha.kind = "device";
}
