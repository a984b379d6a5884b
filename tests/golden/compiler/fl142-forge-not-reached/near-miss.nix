# The host has the role.
{ base, merge, ... }:
merge base {
  services.forge = {
    host = "alpha";
    port = 23232;
  };
  roles.git.services = [ "forge" ];
  providers.git = {
    hosts = [ "alpha" ];
    forges.forge.service = "forge";
  };
  services.wiki.git.pull = {
    on = "forge";
    repositories = [ "infra" ];
  };
  hosts.beta.roles = [ "git" ];
}
