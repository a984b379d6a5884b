# The topology says that this is a further cluster, the configuration that it is the only one.
{ further, modules, ... }: {
  imports = [ modules.default ];
  services.florete = {
    cluster = further { };
    hostName = "ursula";
  };
}
