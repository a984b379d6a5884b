{ further, instance, ... }: {
  imports = [ (instance "green") ];
  services.florete_green = {
    cluster = further { };
    hostName = "ursula";
  };
}
