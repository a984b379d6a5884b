{ base, merge, ... }:
merge base {
  hosts.beta.kind = "device";
}
