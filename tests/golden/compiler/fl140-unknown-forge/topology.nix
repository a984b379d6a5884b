# An unknown forge, one on another host, and one whose service is unknown.
{ base, merge, ... }:
merge base {
  services.forge = {
    host = "alpha";
    port = 23232;
  };
  roles.git.services = [ "forge" ];
  providers.git.hosts = [ "alpha" ];
  providers.git.forges = {
    forge.service = "forge";
    far = {
      kind = "forgejo";
      service = "far";
    };
    nowhere.service = "nowhere";
    open = {
      service = "forge";
      address = "192.0.2.7:23231";
    };
  };
  services.far = {
    host = "beta";
    port = 3000;
  };
  services.wiki = {
    roles = [ "git" ];
    git.pull = {
      on = "forg";
      repositories = [ "infra" ];
    };
  };
}
