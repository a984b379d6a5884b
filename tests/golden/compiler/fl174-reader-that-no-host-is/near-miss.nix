# One host has the tag.
{ base, merge, ... }:
merge base {
  hosts.alpha.tags = [ "db" ];
  secrets.backup = {
    generate = "password";
    readers = [ { tags = [ "db" ]; } ];
  };
  providers.secret.hosts = [ "alpha" ];
}
