# One that nobody has in the flake.
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
