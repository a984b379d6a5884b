# Ann may request a role for longer than before, and another user may approve that.
{
  base,
  key,
  merge,
  ...
}:
let
  requested = merge base {
    providers.config.hosts = [ "alpha" ];
    hosts.alpha.users = [
      "leo"
      "kim"
    ];
    hosts.beta.users = [ "ann" ];
    users.ann.roles = [ "operator" ];
    users.leo = {
      roles = [ "operator" ];
      approvalKeys = [ (key "leo") ];
    };
    users.kim.roles = [ "operator" ];
    services.search = {
      host = "beta";
      port = 9000;
    };
    teams.ops.users = [ "ann" ];
    teams.leads.users = [ "leo" ];
    roles.oncall = {
      services = [ "wiki" ];
      request = {
        by = [ "ops" ];
        approve = [ "leads" ];
        most = 4;
      };
    };
  };
in
{
  before = requested;
  after = merge requested {
    users.kim.approvalKeys = [ (key "kim") ];
    teams.leads.users = [
      "leo"
      "kim"
    ];
    roles.oncall = {
      services = [
        "search"
        "wiki"
      ];
      request.most = 8;
    };
  };
}
