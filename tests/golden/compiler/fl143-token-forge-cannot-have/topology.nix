# Tokens for no repository, for a repository without an owner, with names that no
# forge permits, and of the account of the provider.
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
      user = "florete-admin";
    };
  };
  services.wiki = {
    roles = [ "git" ];
    git = {
      plain = {
        on = "forge";
        repositories = [
          "infra"
          "ops/infra"
        ];
      };
      nothing = {
        on = "forge";
        repositories = [ ];
      };
      a-name-that-is-longer-than-is-ok = {
        on = "forge";
        repositories = [ "ops/infra" ];
      };
      of-the-provider = {
        on = "forge";
        called = "florete-admin";
        repositories = [ "ops/infra" ];
      };
      two--hyphens = {
        on = "forge";
        repositories = [ "ops/infra" ];
      };
    };
  };
}
