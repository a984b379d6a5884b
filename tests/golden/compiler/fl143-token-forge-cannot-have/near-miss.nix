# Names of the maximum length, and a repository with an owner.
{ base, merge, ... }:
merge base {
  services.forge = {
    host = "alpha";
    port = 3000;
  };
  roles.git.services = [ "forge" ];
  providers.git = {
    hosts = [ "alpha" ];
    forges.forge = {
      kind = "forgejo";
      service = "forge";
    };
  };
  services.wiki = {
    roles = [ "git" ];
    git.a-name-as-long-as-is-ok-xx = {
      on = "forge";
      repositories = [ "ops/infra" ];
    };
  };
}
