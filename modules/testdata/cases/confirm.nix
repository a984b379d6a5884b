# A switch undoes itself; each of the two clusters adds its own check.
{
  flake,
  further,
  instance,
  modules,
  ...
}:
{
  imports = [
    modules.default
    (instance "blue")
  ];
  networking.hostName = "ursula";
  services.florete = {
    cluster = flake;
    confirm.enable = true;
  };
  services.florete_blue = {
    cluster = further { };
    confirm = {
      enable = true;
      timeout = "1m30s";
    };
  };
}
