# The other way round.
{ flake, instance, ... }: {
  imports = [ (instance "blue") ];
  services.florete_blue = {
    cluster = flake;
    hostName = "ursula";
  };
}
