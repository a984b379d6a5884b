# A key pair whose public key is not in the flake.
{ base, merge, ... }:
merge base {
  secrets.deploy = {
    generate = "ssh";
    readers = [ { host = "alpha"; } ];
    rotate = 30;
  };
  providers.secret.hosts = [ "alpha" ];
  providers.config.hosts = [ "alpha" ];
}
