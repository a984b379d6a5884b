# The host that makes secrets provides documents, too.
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
