# The host of one provides the other, too.
{ base, merge, ... }:
merge base {
  secrets.deploy = {
    generate = "ssh";
    readers = [ { host = "alpha"; } ];
    public = ./public.json;
  };
  providers.secret.hosts = [ "alpha" ];
  providers.config.hosts = [
    "beta"
    "alpha"
  ];
}
