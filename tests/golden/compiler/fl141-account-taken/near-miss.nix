# The same account at two forges.
{ base, merge, ... }:
merge base {
  services.forge = {
    host = "alpha";
    port = 23232;
  };
  services.other = {
    host = "alpha";
    port = 3000;
  };
  roles.git.services = [
    "forge"
    "other"
  ];
  providers.git = {
    hosts = [ "alpha" ];
    forges = {
      forge.service = "forge";
      other = {
        kind = "forgejo";
        service = "other";
      };
    };
  };
  services.ci = {
    host = "alpha";
    port = 9100;
    roles = [ "git" ];
    git.job-pull = {
      on = "forge";
      repositories = [ "infra" ];
    };
  };
  services.ci-job = {
    host = "beta";
    port = 9101;
    roles = [ "git" ];
    git.pull = {
      on = "other";
      repositories = [ "ops/infra" ];
    };
  };
}
