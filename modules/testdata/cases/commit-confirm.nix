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
    commitConfirm.enable = true;
  };
  services.florete_blue = {
    cluster = further { };
    commitConfirm = {
      enable = true;
      timeout = "1m30s";
    };
  };
}
