# A host joins the group whose hosts read a secret, and another secret is no longer one for each
# host.
{ base, merge, ... }:
let
  before = merge base {
    hostGroups.eu = { };
    hosts.alpha.group = "eu";
    secrets = {
      mesh = {
        generate = "hex";
        readers = [ { group = "eu"; } ];
      };
      backup = {
        generate = "password";
        perHost = true;
        readers = [ { tags = [ "server" ]; } ];
      };
    };
    hosts.alpha.tags = [ "server" ];
    hosts.beta.tags = [ "server" ];
    providers.secret.hosts = [ "alpha" ];
  };
in
{
  inherit before;
  after = merge before {
    hosts.beta.group = "eu";
    secrets.backup.perHost = false;
  };
}
