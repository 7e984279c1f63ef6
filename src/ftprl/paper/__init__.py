"""Every statement of the paper as an experiment: it runs, it is drawn, and it is judged by numbers."""
