# The role leads there by a group, and by a role in it.
{ base, merge, ... }:
merge base {
  services.blog = {
    host = "beta";
    port = 8081;
  };
  services.shell = {
    hosts = [
      "alpha"
      "beta"
    ];
    port = 22;
    scope = "node";
  };
  serviceGroups.all = [
    "blog"
    "wiki"
  ];
  roles.reader = {
    serviceGroups = [ "all" ];
    roles = [ "other" ];
    except = [
      "blog"
      "shell@beta"
    ];
  };
  roles.other.services = [
    "blog"
    "shell"
  ];
  users.ann.roles = [
    "reader"
    "other"
  ];
}
