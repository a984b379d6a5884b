# Two services whose tokens would belong to the same account.
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
      on = "forge";
      repositories = [ "infra" ];
    };
  };
}
