# The topology declares an instance, and the configuration does not.
{ further, modules, ... }: {
  imports = [ modules.default ];
  services.florete = {
    cluster = further { };
    hostName = "ursula";
  };
}
