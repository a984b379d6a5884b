# No host has the tag.
{ base, merge, ... }:
merge base {
  hosts.alpha.tags = [ "db" ];
  secrets.backup = {
    generate = "password";
    readers = [ { tags = [ "database" ]; } ];
  };
  providers.secret.hosts = [ "alpha" ];
}
