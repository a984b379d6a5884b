# Operators read public keys at hosts that provide documents.
{ base, merge, ... }:
merge base {
  secrets.deploy = {
    generate = "ssh";
    readers = [ { host = "alpha"; } ];
    public = ./public.json;
  };
  providers.secret.hosts = [ "alpha" ];
  providers.config.hosts = [ "beta" ];
}
