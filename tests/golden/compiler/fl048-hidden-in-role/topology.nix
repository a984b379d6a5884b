{ base, merge, ... }:
merge base {
  services = {
    blog = {
      host = "beta";
      port = 81;
      visibility = "host";
    };
    cron = {
      host = "beta";
      port = 82;
      visibility = "host";
    };
  };
  roles.reader = {
    services = [
      "wiki"
      "blog"
    ];
    serviceGroups = [ "tools" ];
  };
  serviceGroups = {
    tools = [
      "cron"
      "wiki"
    ];
    control-plane = [ "cron" ];
  };
}
