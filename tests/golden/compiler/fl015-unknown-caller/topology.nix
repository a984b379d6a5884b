{ base, merge, ... }:
merge base {
  hosts.alpha.callers."user/ann" = [ "ann" ];
  hosts.beta.callers."users/ann" = [ "ann" ];
}
