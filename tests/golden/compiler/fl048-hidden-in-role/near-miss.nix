{ base, merge, ... }:
merge base {
  services.blog = {
    host = "beta";
    port = 81;
    visibility = "host";
  };
  serviceGroups.tools = [ "blog" ];
}
