{ base, merge, ... }:
merge base {
  hosts.alpha.callers.node = [ "root" ];
  hosts.beta.callers = {
    "user/ann" = [ 1000 ];
    "service/wiki" = [ "www" ];
  };
}
