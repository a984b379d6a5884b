# A raised generation whose public key is not recorded yet.
{ base, merge, ... }:
merge base {
  secrets.backup = {
    generate = "age";
    generation = 3;
    readers = [ { host = "alpha"; } ];
    public = ./public.json;
  };
  providers.secret.hosts = [ "alpha" ];
  providers.config.hosts = [ "alpha" ];
}
